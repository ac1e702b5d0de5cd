"""Memories on a GPU. Not called `cuda`: pytest would put that before the package `cuda` that numba-cuda imports."""
