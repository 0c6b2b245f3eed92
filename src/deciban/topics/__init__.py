"""Topic models: latent Dirichlet allocation, probabilistic latent semantic analysis, topics of classes."""
