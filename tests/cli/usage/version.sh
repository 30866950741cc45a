peakproof --version
