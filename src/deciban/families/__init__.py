"""How one class produces data: statistics, prior, estimate, density and leave-one-out, one file a family."""
