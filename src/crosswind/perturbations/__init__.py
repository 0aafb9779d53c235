"""The perturbations, one file each, named by its kind, in a folder for its axis."""
