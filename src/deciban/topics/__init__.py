"""Topic models: latent Dirichlet allocation, probabilistic latent semantic analysis, and classes with several topics."""
