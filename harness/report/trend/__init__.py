"""Many runs side by side: what became of them night after night, and what they never tried."""
