"""The pages. This file keeps another package of that name, wherever it is installed, from standing in for them."""
