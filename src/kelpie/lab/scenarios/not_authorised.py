"""The cluster will not answer for a group: who asks has no permission.

With ACLs in force, a consumer without Read on its group hears error 30
(GROUP_AUTHORIZATION_FAILED), and stops with an exception. A monitor without
Describe hears it too: then it must not say that the group is well. The lab
has no ACLs yet: here the error is injected into every answer about the group.
"""

from kelpie.errors import ErrorCode
from kelpie.lab.scenarios.coordinated_groups import lookup, two_groups
from kelpie.lab.scenarios.stage import Stage

NAME = "not-authorised"
PERSONAS = ("4.3", "3.9", "2.8", "0.9")


async def run(stage: Stage) -> None:
    groups = await two_groups(stage, 2, 1)
    cluster, forbidden, allowed = groups.cluster, groups.first, groups.second

    stage.step(f"Somebody takes away the permissions for {forbidden}.")
    await groups.members[forbidden].crash()
    refusal = cluster.fail(ErrorCode.GROUP_AUTHORIZATION_FAILED, group=forbidden)
    answers = {group: (await lookup(stage, cluster, 1, group)).error for group in (forbidden, allowed)}
    for group, code in answers.items():
        expected = ErrorCode.GROUP_AUTHORIZATION_FAILED if group == forbidden else ErrorCode.NONE
        stage.expect(code == expected, f"{group}: a lookup is answered with {code}")
    await stage.incident(cluster, finds={"KLP107": [forbidden]})

    stage.step("The permissions are given back.")
    refusal.lift()
    answer = await lookup(stage, cluster, 1, forbidden)
    stage.expect(answer.error == 0, f"{forbidden}: its coordinator is broker {answer.node_id}")
