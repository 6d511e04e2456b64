"""Clusters of containers on a Docker engine: the engine, the images, the driver, and the guard that cleans up."""
