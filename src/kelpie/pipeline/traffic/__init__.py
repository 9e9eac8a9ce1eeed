"""Traffic by group: from what brokers counted, scrape by scrape, to what each group fetched.

growth    samples of some scrapes to what was counted between them
evidence  who was assigned which partition, and who committed, on Spark
buckets   a day in parts of some partitions each, which are judged one after the other
verdicts  to which group an unattributed delta belongs: exact, apportioned or unknown
midnight  which groups keep their labels from one day to the next
gaps      from when to when a label was missing, and why
days      which days have to be made (again), and their tasks

derivation    what groups read, by committed offsets and sizes of logs, where no broker counts it
derived_days  its days, and their tasks
day_tables    what both kinds of days share
"""
