"""The survey: one look at a whole cluster, also at one that is half dead.

    observations = await survey(Settings.of("kafka-1:9092"))

`surveying` is the order of questions; the other files are one question each.
"""

from kelpie.client.survey.options import SurveyOptions
from kelpie.client.survey.surveying import survey, wall_clock

__all__ = ["SurveyOptions", "survey", "wall_clock"]
