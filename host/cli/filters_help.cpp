#include "host/cli/filters_help.hpp"

namespace sluice::cli {

std::string_view filters_help() {
  return R"(Which messages a command means: their IDs, --all, or a filter. These together
choose what all of them choose:

  --where FILTER      what the filter matches
  --older-than TIME   the same as --where 'age > TIME'
  --error CAUSE       what failed for a cause: the fingerprint that `sluice dlq`
                      shows, or such an error's text
  --error-like TEXT   the same as --where 'error like "*TEXT*"'
  --limit N           no more than N of them

A filter:

  receive_count > 3 and data.type = "invoice"
  (state = "delayed" or age > 10m) and not attributes.tenant in ("acme", "zeta")
  error like "*timeout*" and exists(data.items[0].sku)

Fields:
  id, content_type, group        text
  queue_type                     "STANDARD" or "DLQ"
  state, also as status          "ready", "in_flight" or "delayed"
  receive_count, version         numbers
  age                            a duration: the time since created_at
  created_at, updated_at, sent_at, received_at, invisible_until_at
                                 times
  error (failure.error), failure.fingerprint, failure.handler, failure.host
                                 text, where the last attempt failed
  failure.attempts, failure.failed_at
                                 a number, a time
  attributes.NAME                text
  data, data.items[0].sku, data["odd key"]
                                 the body, or a part of it where it is JSON

Operators:
  = != < <= > >=                 numbers compare exactly; different kinds are
                                 unequal, and neither is less
  like, ~                        * stands for any text, \* for a star
  in (A, B), exists(FIELD)
  and, or, not, ( )              `and` binds more than `or`, `not` more than both

Values: text in " or ', numbers, true, false, null, durations such as 250ms,
30s, 10m, 2h, 7d, and times such as 2026-01-31 or 2026-01-31T12:00:00Z.

A comparison with something that the message does not have is false, whatever
the operator: data.tenant != "acme" leaves out messages without a tenant, and
not data.tenant = "acme" takes them.
)";
}

}  // namespace sluice::cli
