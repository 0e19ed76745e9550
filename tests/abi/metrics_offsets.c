/*
 * Where every field of "sluice.metrics/1" lies, on a 64-bit machine. Lines are only ever added: see offsets.c.
 */
#include <sluice/metrics.h>

#define OFFSET(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field " has moved")
#define SIZE(type, least) _Static_assert(sizeof(type) >= (least), #type " has shrunk")
#define VALUE(name, is) _Static_assert((name) == (is), #name " has another value")

SIZE(sluice_metric_spec, 56);
OFFSET(sluice_metric_spec, struct_size, 0);
OFFSET(sluice_metric_spec, kind, 4);
OFFSET(sluice_metric_spec, name, 8);
OFFSET(sluice_metric_spec, help, 24);
OFFSET(sluice_metric_spec, buckets, 40);
OFFSET(sluice_metric_spec, bucket_count, 48);

SIZE(sluice_metrics, 48);
OFFSET(sluice_metrics, struct_size, 0);
OFFSET(sluice_metrics, reserved, 4);
OFFSET(sluice_metrics, metric, 8);
OFFSET(sluice_metrics, series, 16);
OFFSET(sluice_metrics, add, 24);
OFFSET(sluice_metrics, set, 32);
OFFSET(sluice_metrics, observe, 40);

VALUE(SLUICE_METRIC_COUNTER, 1);
VALUE(SLUICE_METRIC_GAUGE, 2);
VALUE(SLUICE_METRIC_HISTOGRAM, 3);
VALUE(SLUICE_METRICS_OF_A_JOB, 64);
VALUE(SLUICE_METRIC_SERIES, 256);
VALUE(SLUICE_METRIC_LABELS, 8);
VALUE(SLUICE_METRIC_BUCKETS, 40);
_Static_assert(sizeof(SLUICE_METRICS_1) == sizeof("sluice.metrics/1"), "the id has changed");

/* An object file wants something in it. */
extern const int sluice_metrics_offsets_hold;
const int sluice_metrics_offsets_hold = 1;
