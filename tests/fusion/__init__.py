"""Whether the numbers of the fusion carry over to sets that they were not fitted on."""
