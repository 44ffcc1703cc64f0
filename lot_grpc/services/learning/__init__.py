"""What to do next: recommendations, trends, decisions, actions and their rewards."""
