"""Where files are: in a folder of this machine, or on a file system that all machines reach by a URL.

A place of this machine is a `Path`, and nothing of this package stands between it and its reader. A place
that a URL names is a `RemotePath`, with those methods of `Path` that callers use.

    place            text to a place and back; what `Path` lacks, for both kinds
    remote           RemotePath
    stores           what a file system must be able to do
    hdfs, objects    HDFS; S3, Google's and Azure's object stores
    credentials      where settings of S3 come from, and how libraries and Spark get them
"""

from kelpie.places.place import Place, PlaceRefused, is_remote, place_of
from kelpie.places.remote import RemotePath

__all__ = ["Place", "PlaceRefused", "RemotePath", "is_remote", "place_of"]
