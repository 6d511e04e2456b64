"""Sweeps: many schedules of one scenario, simulated and judged, searched by their states, made smaller, kept."""
