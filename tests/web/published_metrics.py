"""Names, labels and types that other exporters publish, for the test that compares.

kafka_exporter: the table of metrics in its README. KMinion: docs/metrics.md of its repository, without those
of its own end-to-end test. kafka-lag-exporter: the list of metrics in its README, but for a label that its
code does not write (is_simple_consumer). Burrow: its Prometheus endpoint.
"""

_PLACE = "consumergroup topic partition"
_TOPIC = "topic partition"
_OF_MEMBER = "cluster_name group topic partition member_host consumer_id client_id"
PUBLISHED = {
    "kafka-exporter": {
        "kafka_brokers": "",
        "kafka_broker_info": "address id",
        "kafka_topic_partitions": "topic",
        "kafka_topic_partition_current_offset": _TOPIC,
        "kafka_topic_partition_oldest_offset": _TOPIC,
        "kafka_topic_partition_in_sync_replica": _TOPIC,
        "kafka_topic_partition_leader": _TOPIC,
        "kafka_topic_partition_leader_is_preferred": _TOPIC,
        "kafka_topic_partition_replicas": _TOPIC,
        "kafka_topic_partition_under_replicated_partition": _TOPIC,
        "kafka_consumergroup_current_offset": _PLACE,
        "kafka_consumergroup_current_offset_sum": "consumergroup topic",
        "kafka_consumergroup_lag": _PLACE,
        "kafka_consumergroup_lag_sum": "consumergroup topic",
        "kafka_consumergroup_members": "consumergroup",
    },
    "kminion": {
        "kminion_exporter_up": "version",
        "kminion_exporter_offset_consumer_records_consumed_total": "",
        "kminion_kafka_broker_info": "address broker_id is_controller port rack_id",
        "kminion_kafka_cluster_info": "broker_count cluster_id cluster_version controller_id",
        "kminion_kafka_broker_log_dir_size_total_bytes": "address broker_id port rack_id",
        "kminion_kafka_topic_log_dir_size_total_bytes": "topic_name",
        "kminion_kafka_topic_info": "cleanup_policy partition_count replication_factor topic_name",
        "kminion_kafka_topic_partition_low_water_mark": "partition_id topic_name",
        "kminion_kafka_topic_low_water_mark_sum": "topic_name",
        "kminion_kafka_topic_partition_high_water_mark": "partition_id topic_name",
        "kminion_kafka_topic_high_water_mark_sum": "topic_name",
        "kminion_kafka_consumer_group_info": "coordinator_id group_id protocol protocol_type state",
        "kminion_kafka_consumer_group_members": "group_id",
        "kminion_kafka_consumer_group_empty_members": "group_id",
        "kminion_kafka_consumer_group_topic_members": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_assigned_partitions": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_offset_sum": "group_id topic_name",
        "kminion_kafka_consumer_group_topic_partition_lag": "group_id partition_id topic_name",
        "kminion_kafka_consumer_group_topic_lag": "group_id topic_name",
        "kminion_kafka_consumer_group_offset_commits_total": "group_id",
    },
    "lag-exporter": {
        "kafka_consumergroup_group_offset": _OF_MEMBER,
        "kafka_consumergroup_group_lag": _OF_MEMBER,
        "kafka_consumergroup_group_lag_seconds": _OF_MEMBER,
        "kafka_consumergroup_group_max_lag": "cluster_name group",
        "kafka_consumergroup_group_max_lag_seconds": "cluster_name group",
        "kafka_consumergroup_group_sum_lag": "cluster_name group",
        "kafka_consumergroup_group_topic_sum_lag": "cluster_name group topic",
        "kafka_partition_latest_offset": "cluster_name topic partition",
        "kafka_partition_earliest_offset": "cluster_name topic partition",
        "kafka_consumergroup_poll_time_ms": "cluster_name",
    },
    "burrow": {
        "burrow_kafka_consumer_lag_total": "cluster consumer_group",
        "burrow_kafka_consumer_status": "cluster consumer_group",
        "burrow_kafka_consumer_current_offset": "cluster consumer_group topic partition owner",
        "burrow_kafka_consumer_partition_lag": "cluster consumer_group topic partition owner",
        "burrow_kafka_topic_partition_status": "cluster consumer_group topic partition owner",
        "burrow_kafka_topic_partition_offset": "cluster topic partition",
    },
}
COUNTERS = {
    "kminion_exporter_offset_consumer_records_consumed_total",
    "kminion_kafka_consumer_group_offset_commits_total",
}
"""All others are gauges."""
