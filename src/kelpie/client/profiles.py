"""Named clusters: which brokers and which client properties a name stands for.

They are kept in one TOML file, `$XDG_CONFIG_HOME/kelpie/profiles.toml` (else below ~/.config):

    [production]
    bootstrap = "kafka-1:9092,kafka-2:9092"
    command-config = "production.properties"

A path is relative to the folder of that file.
"""

from dataclasses import dataclass
from pathlib import Path

from kelpie import folders
from kelpie.client.client_errors import BadSettings
from kelpie.model.suggestions import did_you_mean
from kelpie.model.words import listed

KEYS = ("bootstrap", "command-config")


@dataclass(frozen=True, slots=True)
class Profile:
    bootstrap: str | None = None
    command_config: str | None = None


def profiles_file() -> Path:
    return folders.config() / "profiles.toml"


def read_profile(name: str) -> Profile:
    """Raises BadSettings."""
    import tomllib  # noqa: PLC0415 - few commands have a profile.

    path = profiles_file()
    try:
        profiles = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadSettings(
            f'Profile {name}: there is no {path}. Write [{name}] and bootstrap = "HOST:PORT" into it.'
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"Profile {name}: {path} cannot be read: {error}") from None
    if name not in profiles:
        hint = did_you_mean(name, profiles)
        known = listed(sorted(profiles)) or "none"
        raise BadSettings(f"{path} has no profile {name!r}. {hint}It has: {known}.")
    return _checked(profiles[name], f"{path}, profile {name}", path.parent)


def _checked(profile: object, place: str, folder: Path) -> Profile:
    if not isinstance(profile, dict):
        raise BadSettings(f"{place}: this is a value. A profile is a table: [NAME] on a line of its own.")
    unknown = sorted(set(profile) - set(KEYS))
    if unknown:
        raise BadSettings(f"{place}: {listed(unknown)} means nothing here. Known: {listed(KEYS)}.")
    for key, value in profile.items():
        if not isinstance(value, str) or not value:
            raise BadSettings(f'{place}: {key} must be text in quotes, such as "kafka-1:9092".')
    config = profile.get("command-config")
    return Profile(
        profile.get("bootstrap"), str(folder / Path(config).expanduser()) if config is not None else None
    )
