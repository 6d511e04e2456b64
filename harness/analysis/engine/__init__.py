"""The engine that judges: its session, its JVM or Spark Connect, its file systems, and in what engines differ."""
