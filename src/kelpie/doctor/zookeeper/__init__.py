"""What the rules about groups of ZooKeeper share.

looks       snapshots of the tree, put beside the assignment that its members must have computed
member_logs what the log of each member says: tries, conflicts, failures, what it owned when
period      from when to when the rows of a finding lasted
sessions    which session was whose, and which of them expired
timeouts    the settings that decide whether retries outlast a session
"""
