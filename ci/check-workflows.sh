#!/bin/sh
# Holds the files of GitHub and GitLab against their schemas and zizmor's audits, without a network.
# Usage: check-workflows.sh FOLDER-OF-PROGRAMS [ROOT]
bin=$1 root=${2:-.}
status=0

schema() {
    "$bin/check-jsonschema" --builtin-schema "$@" || status=1
}

schema vendor.github-workflows "$root"/.github/workflows/*.yml
schema custom.github-workflows-require-timeout "$root"/.github/workflows/*.yml
schema vendor.github-actions "$root"/ci/action/action.yml
schema vendor.gitlab-ci --data-transform gitlab-ci "$root"/.gitlab-ci.yml
"$bin/zizmor" --offline --no-config --no-progress --quiet --strict-collection --persona pedantic \
    "$root"/.github/workflows/*.yml "$root"/ci/action/action.yml || status=1
exit $status
