"""Measuring how well recall finds: sets of questions with known answers, asked of the services."""
