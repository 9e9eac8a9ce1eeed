"""Log segments of the offsets topic, from the disks of brokers, into bronze tables."""
