"""Domain ⇄ Record: payload keys, points, conditions. Pure functions, one module per kind."""
