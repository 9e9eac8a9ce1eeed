"""From tables to findings: the rules of the doctor, group by group and for the cluster as a whole."""
