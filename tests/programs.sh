#!/bin/sh
# Fetches what tests use and pip does not have, from Debian: a browser, promtool, kcat, zsh and fish. Root installs the
# packages. Others unpack promtool, kcat and fish into the folder BIN; a browser and zsh need files in /usr.
# What cannot be had is named, with the tests that are skipped for it.
# Usage: programs.sh BIN
set -u
bin=$(cd "$1" && pwd) || exit 1

has() { command -v "$1" >/dev/null || test -x "$bin/$1"; }

install() {
  test "$(id -u)" = 0 &&
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$@" >/dev/null 2>&1
}

# unpack PROGRAM PACKAGE…: the program and the libraries that it needs, below BIN/PROGRAM.files.
unpack() (
  program=$1 files=$bin/$1.files
  shift
  mkdir -p "$files" && cd "$files" || exit 1
  apt-get download -qq "$@" 2>/dev/null || exit 1
  for package in *.deb; do
    dpkg-deb --extract "$package" . && rm "$package" || exit 1
  done
  find usr/bin -type f ! -name "$program" -delete && rm -rf usr/share/doc usr/share/man var
  test ! -d etc || mv etc usr/ || exit 1 # Fish looks for both beside its bin.
  for libraries in usr/lib/*-linux-*; do :; done
  cat >"$bin/$program" <<END
#!/bin/sh
LD_LIBRARY_PATH='$files/$libraries' exec '$files/usr/bin/$program' "\$@"
END
  chmod +x "$bin/$program" && { "$bin/$program" --version || "$bin/$program" -V; } >/dev/null 2>&1
)

# or_skip TESTS PROGRAM PACKAGE: one line about a program that could not be had.
or_skip() {
  rm -rf "$bin/$2" "$bin/$2.files"
  echo "Tests of $1 are skipped: there is no $2 (Debian: apt install $3)."
}

has chromium-headless-shell || has chromium || has google-chrome ||
  install chromium-headless-shell fonts-noto-cjk || or_skip pages chromium chromium-headless-shell
has promtool || unpack promtool prometheus || or_skip "alert rules" promtool prometheus
has kcat || install kcat || unpack kcat kcat librdkafka1 libyajl2 || or_skip kcat kcat kcat
has fish || install fish || unpack fish fish fish-common libpcre2-32-0 || or_skip "completion in fish" fish fish
has zsh || install zsh || or_skip "completion in zsh" zsh zsh
