"""Helpers of checks: findings, assumptions, excuses, and transformations of facts that several checks need."""
