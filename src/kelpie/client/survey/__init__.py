"""The survey: the state of a whole cluster at one time, also of a cluster that is half dead.

    observations = await survey(Settings.of("kafka-1:9092"))

`surveying` is the order of the questions. The questions themselves are those of `client.admin`.
"""

from kelpie.client.admin.asking import wall_clock
from kelpie.client.survey.surveying import SurveyOptions, survey, unreachable

__all__ = ["SurveyOptions", "survey", "unreachable", "wall_clock"]
