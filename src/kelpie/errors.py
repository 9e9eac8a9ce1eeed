"""Kafka's error codes, and what each means to the person on call.

Codes, names and flags are those of org.apache.kafka.common.protocol.Errors in Kafka 4.3.1. Since 0.9 a code
keeps its meaning, but not always its name: where logs of Kafka 0.9 use another one, it is the `old_name`.

Retriable is Java's RetriableException: the same request may succeed later. A code that refreshes metadata is
an InvalidMetadataException: the client believes in a wrong leader, and asks for metadata before it retries.
The flags do not tell all that clients do by themselves: after 15 and 16 they look for the coordinator, and
after 22, 25, 27, 79 and 110, none of them retriable, they join the group again.
"""

from dataclasses import dataclass
from enum import IntEnum


class ErrorCode(IntEnum):
    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    code: int
    name: str
    retriable: bool
    refreshes_metadata: bool
    meaning: str
    old_name: str | None = None


# Code; R if retriable, M if metadata is refreshed; meaning.
_TABLE: tuple[tuple[int, str, str], ...] = (
    (-1, "", "The broker failed in a way that has no code of its own; its log holds the exception."),
    (0, "", "All went well."),
    (1, "", "The offset asked for was deleted or never written; auto.offset.reset decides what follows."),
    (2, "R", "A batch is damaged or malformed: wrong checksum, wrong size, or no key in a compacted topic."),
    (3, "RM", "This broker knows no such topic or partition: deleted, mistyped, or not yet heard of."),
    (4, "", "The size limits in a fetch request make no sense."),
    (5, "RM", "The partition has no leader: an election is under way, or every eligible replica is down."),
    (6, "RM", "This broker does not lead, or no longer holds, the partition; find the one that does."),
    (7, "R", "The broker did not finish in the time allowed, often because replicas follow too slowly."),
    (8, "", "A broker that the request depends on is down, or unknown to the cluster."),
    (9, "RM", "A replica that the request needs is on a broker that is down, or not on this broker."),
    (10, "", "A record or batch is larger than the topic takes (max.message.bytes)."),
    (11, "", "A former controller still gives orders; another one has taken over since."),
    (12, "", "The text stored along with a committed offset exceeds offset.metadata.max.bytes."),
    (13, "RM", "The connection broke before the answer came; mostly the client itself sets this code."),
    (14, "R", "The coordinator has just taken over and still reads its partition; wait and ask again."),
    (15, "R", "No broker can coordinate now: the partition behind the group lacks a leader or replicas."),
    (16, "R", "This broker does not lead the partition behind the group; look the coordinator up again."),
    (17, "", "The topic name is illegal, or the topic is internal and closed to this request."),
    (18, "", "A produced batch is larger than a whole log segment may be (segment.bytes)."),
    (19, "R", "Write refused, nothing stored: fewer replicas in sync than min.insync.replicas demands."),
    (20, "R", "The leader stored the write, then replicas fell out of sync; a retry may duplicate it."),
    (21, "", "A producer asked for acks other than 0, 1 or all."),
    (22, "", "The member is of another generation: the group rebalanced without it, so it must rejoin."),
    (23, "", "Member and group share no assignor or protocol type, or the member offered none."),
    (24, "", "The group id is empty, or otherwise not allowed in this request."),
    (25, "", "The coordinator does not know this member (expired, removed, or lost); it must rejoin."),
    (26, "", "session.timeout.ms is outside the broker's group.min and group.max.session.timeout.ms."),
    (27, "", "The group is rebalancing and the member must rejoin; a commit answered so was not stored."),
    (28, "", "The commit does not fit into one batch of the offsets topic."),
    (29, "", "The principal lacks a permission on the topic."),
    (30, "", "The principal lacks a permission on the group, such as READ to join and to commit."),
    (31, "", "The principal lacks a permission on the cluster."),
    (32, "", "A record's timestamp is further from the broker's clock than the topic allows."),
    (33, "", "The broker does not offer the SASL mechanism that the client wants."),
    (34, "", "A SASL request came out of turn, for instance on a listener without SASL."),
    (35, "", "The broker does not speak this version of the request: client and broker are too far apart."),
    (36, "", "A topic of this name exists already."),
    (37, "", "The number of partitions is below 1, or would shrink the topic."),
    (38, "", "The replication factor is below 1, or above the number of brokers that can take replicas."),
    (39, "", "The replicas chosen by hand do not add up: unknown brokers, duplicates, or gaps."),
    (40, "", "The name or the value of a setting is not acceptable."),
    (41, "R", "This broker is not the active controller; ask the one that is."),
    (42, "", "The request is malformed or contradicts itself; the broker's log says in what."),
    (43, "", "The partition's log is in an old message format that cannot serve this request."),
    (44, "", "A policy configured on the broker, for topics or for settings, forbids the request."),
    (45, "", "A gap in an idempotent producer's sequence: a batch before this one is missing."),
    (46, "", "The broker has this batch of the producer already."),
    (47, "", "The producer's epoch is outdated: a newer instance started, or its transaction timed out."),
    (48, "", "The transaction is not in a state that allows this step."),
    (49, "", "The producer id does not, or no longer, belong to this transactional id."),
    (50, "", "transaction.timeout.ms exceeds the broker's transaction.max.timeout.ms."),
    (51, "R", "The previous step of this transaction is still being completed; try again shortly."),
    (52, "", "A former transaction coordinator sent markers; a newer one has taken over."),
    (53, "", "The principal lacks a permission on the transactional id."),
    (54, "", "The request is about permissions, and the broker has no authorizer."),
    (55, "", "Another item of the same request failed, so this one was not even tried."),
    (56, "RM", "The disk that holds the partition failed, and the broker has taken it offline."),
    (57, "", "The log directory is not among the broker's log.dirs."),
    (58, "", "SASL login failed: wrong or unknown credentials."),
    (59, "", "The broker has forgotten this producer, mostly because its records were deleted."),
    (60, "", "A reassignment of this partition is running, and the request would collide with it."),
    (61, "", "Delegation tokens are switched off on this broker."),
    (62, "", "The broker does not know this delegation token."),
    (63, "", "The principal is neither owner nor renewer of the delegation token."),
    (64, "", "Delegation tokens are not handed out over a connection that is secured in this way."),
    (65, "", "The principal lacks a permission on the delegation token."),
    (66, "", "The delegation token is past its lifetime."),
    (67, "", "The broker does not support principals of this type."),
    (68, "", "The group still has members, and what was asked needs an empty one."),
    (69, "", "The coordinator has no such group: never existed, expired, deleted, or of another type."),
    (70, "R", "The broker has dropped the fetch session, by eviction or restart; clients open a new one."),
    (71, "R", "Client and broker are out of step in the fetch session; clients open a new one."),
    (72, "RM", "The leader lacks a listener of the name the client came in by: listeners differ by broker."),
    (73, "", "Topics cannot be deleted here (delete.topic.enable is false)."),
    (74, "RM", "The request carries an old leader epoch: the leader has changed since."),
    (75, "R", "The request carries a leader epoch that this broker, lagging behind, has not heard of."),
    (76, "", "The data is compressed by a codec that this version of the request cannot carry."),
    (77, "", "A broker acts under an old registration; it has restarted since."),
    (78, "R", "A new leader does not know yet how far its log is committed; ask again soon."),
    (79, "", "A normal first step of joining: the coordinator gave an id, and the member joins with it."),
    (80, "RM", "The replica that should lead is down or out of sync."),
    (81, "", "The group is full: it has as many members as the broker's maximum group size."),
    (82, "", "Another process uses the same group.instance.id, and has pushed this member out."),
    (83, "RM", "No replica may become leader: none is alive, or none that is alive is in sync."),
    (84, "RM", "The partition already has the leader that the election would give."),
    (85, "", "There is no reassignment that could be cancelled."),
    (86, "", "Members still subscribe to the topic, so the group's offsets for it cannot be deleted."),
    (87, "", "The broker's checks refused a record."),
    (88, "R", "Offsets of this group are pending in an open transaction; they can be read once it ends."),
    (89, "R", "The client changes topics faster than its quota allows."),
    (90, "", "A newer producer with the same transactional id has replaced this one."),
    (91, "", "The request names something that does not exist, such as a user with SCRAM credentials."),
    (92, "", "The request names the same thing twice."),
    (93, "", "The credential breaks the broker's rules, for instance too few SCRAM iterations."),
    (94, "", "Controller quorum: sender or receiver is not among the voters that the other expects."),
    (95, "", "A feature was to be set to a level that is not allowed."),
    (96, "", "The controller failed while it changed feature levels; its log holds the exception."),
    (97, "", "A forwarded request's principal is unreadable: the brokers differ in their security setup."),
    (98, "", "Controller quorum: the snapshot asked for is not, or no longer, there."),
    (99, "", "Controller quorum: the position asked for is outside the snapshot."),
    (100, "RM", "This broker knows no topic of this id: deleted, created anew, or not yet heard of."),
    (101, "", "Two brokers run under the same node.id."),
    (102, "", "No broker of this id is registered with the controller."),
    (103, "RM", "The log on disk is of another topic id: the topic was deleted and created anew."),
    (104, "", "The request is meant for another cluster: the cluster ids differ."),
    (105, "", "The coordinator knows no such transactional id."),
    (106, "R", "The fetch session mixes topic names and topic ids; clients open a new one."),
    (107, "", "The leader would count a replica as in sync whose broker is fenced or shutting down."),
    (108, "", "The change of in-sync replicas was made, and another broker became leader by it."),
    (109, "", "The leader keeps this offset in tiered storage only; the follower must start later."),
    (110, "", "New protocol: the coordinator cut this member off; it must drop its partitions and rejoin."),
    (111, "", "New protocol: a member that has not left yet still holds this group.instance.id."),
    (112, "", "New protocol: the broker does not offer the assignor that the member asks for."),
    (113, "", "New protocol: the member's epoch is behind; repeat the request after the next heartbeat."),
    (114, "", "The request went to a broker but is for controllers, or the other way round."),
    (115, "", "The request asks for a kind of endpoint that this node cannot tell about."),
    (116, "", "No controller of this id is known."),
    (117, "", "Client metrics were pushed under an outdated subscription; clients fetch a new one."),
    (118, "", "A push of client metrics is larger than the broker takes."),
    (119, "", "The controller refused a broker's registration; its log says why."),
    (120, "", "The transaction failed, and the producer can go on after aborting it."),
    (121, "", "Share group: the record is not, or no longer, held by the consumer that acknowledges it."),
    (122, "R", "Share group: the broker has dropped the session; clients open a new one."),
    (123, "R", "Share group: client and broker are out of step in the session; clients open a new one."),
    (124, "", "Share group: the stored state has another epoch than the request that would change it."),
    (125, "", "Controller quorum: id and directory id do not belong to the node that was asked."),
    (126, "", "Controller quorum: the node to add is a voter already."),
    (127, "", "Controller quorum: the node to remove or change is not a voter."),
    (128, "", "The broker cannot compile the regular expression that the member subscribes by."),
    (129, "", "The client's picture of the cluster is outdated; it must start over at bootstrap.servers."),
    (130, "", "Streams group: the topology that the member describes is not valid."),
    (131, "", "Streams group: the topology epoch that the member sends is not valid."),
    (132, "", "Streams group: the member runs an older topology than the group."),
    (133, "R", "Share group: the broker holds as many sessions as it may; try again later."),
)

# The names in Kafka 0.9. Codes 14 to 16 were renamed when transactions got coordinators too.
_OLD_NAMES = {
    -1: "UNKNOWN",
    6: "NOT_LEADER_FOR_PARTITION",
    14: "GROUP_LOAD_IN_PROGRESS",
    15: "GROUP_COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR_FOR_GROUP",
}

_INFO = {
    code: ErrorInfo(code, ErrorCode(code).name, "R" in flags, "M" in flags, meaning, _OLD_NAMES.get(code))
    for code, flags, meaning in _TABLE
}


def info(code: int) -> ErrorInfo:
    """Return what is known about a code; an unknown code gets a record that says so.

    An unknown code counts as not retriable, as it does for the Java client, which reads it as -1.
    """
    known = _INFO.get(code)
    if known is not None:
        return known
    return ErrorInfo(
        int(code),
        "(unknown error code)",
        retriable=False,
        refreshes_metadata=False,
        meaning="Kafka 4.3.1 has no such code: the broker is newer, or the answer is not Kafka's.",
    )


def describe(code: int) -> str:
    """Name a code for a reader: "15 COORDINATOR_NOT_AVAILABLE"."""
    return f"{int(code)} {info(code).name}"
