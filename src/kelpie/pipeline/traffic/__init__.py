"""Traffic by group: from what brokers counted, scrape by scrape, to what each group fetched.

growth    samples of some scrapes to what was counted between them
evidence  who was assigned which partition, and who committed, on Spark
verdicts  to which group an unattributed delta belongs: exact, apportioned or unknown
gaps      from when to when a label was missing, and why
days      which days have to be made (again), and their tasks
"""
