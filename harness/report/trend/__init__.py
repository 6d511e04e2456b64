"""Many runs side by side: their outcomes night after night, and what they never tried."""
