"""What checks are written with: findings, assumptions, excuses, and what several checks make of the same facts."""
