"""What an installation of the operator consists of: CRD, rights, Deployment, chart."""
