module quadrille.invalid/post-quantum-clients

go 1.27.1
