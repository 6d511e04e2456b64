"""Clusters of containers on a Docker engine: the engine, the images, the driver, and what outlives its supervisor."""
