"""Environment variables that Kelpie reads, each with what it means. docs/configuration.md is made of it."""

BOOTSTRAP, COMMAND_CONFIG = "KELPIE_BOOTSTRAP", "KELPIE_COMMAND_CONFIG"
CONFIG, STATE, CACHE, REPOSITORY = "KELPIE_CONFIG", "KELPIE_STATE", "KELPIE_CACHE", "KELPIE_REPOSITORY"
NOTIFY_HEADER = "KELPIE_NOTIFY_HEADER"
JAVA_HOME, SPARK_HOME, PYSPARK_PYTHON = "JAVA_HOME", "SPARK_HOME", "PYSPARK_PYTHON"
HADOOP_CONF_DIR = "HADOOP_CONF_DIR"
S3_KEYS = (
    *("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    *("AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"),
)

VARIABLES = {
    BOOTSTRAP: "brokers to begin with, where neither -b nor --profile names any",
    COMMAND_CONFIG: "file of client properties, where neither --command-config nor --profile names one",
    CONFIG: "folder of profiles.toml; $XDG_CONFIG_HOME/kelpie or ~/.config/kelpie if left out",
    STATE: "folder of earlier surveys, acknowledgements, records for undo, the audit log, and clusters of "
    "kelpie real; "
    "$XDG_STATE_HOME/kelpie or ~/.local/state/kelpie if left out",
    CACHE: "folder of jars that were fetched; $XDG_CACHE_HOME/kelpie or ~/.cache/kelpie if left out",
    REPOSITORY: "address of a mirror, in Maven's layout, from which jars are fetched",
    NOTIFY_HEADER: "a header that kelpie doctor --notify sends along, as in Authorization: Bearer …",
    "KELPIE_GUARD_RESTARTS": "times of restarts, which GuardHandler hands on to the next process; not for "
    "people to set",
    "XDG_CONFIG_HOME": "see KELPIE_CONFIG; a relative path is ignored",
    "XDG_STATE_HOME": "see KELPIE_STATE; a relative path is ignored",
    "XDG_CACHE_HOME": "see KELPIE_CACHE; a relative path is ignored",
    "COLUMNS": "width of text and tables; the terminal's if left out, and 80 where there is none",
    "NO_COLOR": "if it is not empty, no colour",
    "FORCE_COLOR": "if it is not empty, colour also where the output is no terminal; NO_COLOR counts first",
    "TERM": "dumb: no colour, and no line of progress",
    JAVA_HOME: "the Java that runs real Kafka, ZooKeeper and Spark; the one of PATH if left out",
    SPARK_HOME: "the Spark whose spark-submit is called; PySpark's if left out",
    PYSPARK_PYTHON: "the Python of executors; the one that runs Kelpie if left out",
    HADOOP_CONF_DIR: "folder of Hadoop's configuration: names of HDFS, settings of S3 (fs.s3a.…)",
    **dict.fromkeys(
        S3_KEYS, "of S3, as Amazon's own tools read it; where it is not set, spark.hadoop.fs.s3a.… counts"
    ),
    "AWS_ALLOW_HTTP": "true: S3 may be asked without TLS; set by itself for AWS_ENDPOINT_URL=http://…",
    "SPARK_LOCAL_IP": "address that Spark on this machine binds to; 127.0.0.1 if left out",
}
