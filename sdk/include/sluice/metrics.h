/*
 * "sluice.metrics/1": counters, gauges and histograms of a plugin's own, which the host shows in its /metrics. Plain
 * C11, with the rules of <sluice/abi.h>. C++ authors have it as counter, gauge and histogram of sluice::Host.
 *
 * Asked of sluice_host the id answers a `sluice_metrics`, valid as long as the host. A host that is older than this
 * feature, or that only tries whether the handler can be made, answers NULL.
 *
 * A metric belongs to a job: all instances that the job's handlers have share it, and it goes when the job ends or is
 * exchanged by a reload. What the host does not take (a bad name, one metric or series too many) it says once in its
 * log and counts; the pointers that it answers then are good for every call and count what is said to them as dropped.
 */
#ifndef SLUICE_METRICS_H
#define SLUICE_METRICS_H

#include "sluice/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_METRICS_1 "sluice.metrics/1"

typedef int32_t sluice_metric_kind;
enum {
  SLUICE_METRIC_COUNTER = 1,
  SLUICE_METRIC_GAUGE = 2,
  SLUICE_METRIC_HISTOGRAM = 3 /* an unknown kind is refused */
};

/* What the host takes: a name and a label's name are 1 to 64 letters, digits and '_' that begin with no digit; a name
 * does not end in "_bucket", "_count" or "_sum"; a label is not "job", "sluice_job", "le", "quantile" or "__...". Of a
 * help text and of a label's value it takes the first 256 bytes. */
#define SLUICE_METRICS_OF_A_JOB 64
#define SLUICE_METRIC_SERIES 256 /* sets of labels of one metric */
#define SLUICE_METRIC_LABELS 8   /* of one series */
#define SLUICE_METRIC_BUCKETS 40

typedef struct sluice_metric_spec {
  uint32_t struct_size;
  sluice_metric_kind kind;
  sluice_string name;    /* /metrics shows it with "sluice_plugin_" before it */
  sluice_string help;    /* one sentence; that of who names the metric first is shown */
  const double* buckets; /* HISTOGRAM: upper bounds, finite and rising; NULL: the host's own, for seconds */
  size_t bucket_count;
} sluice_metric_spec;

/* The host's own. Valid from the call that answers it until `destroy` of the instance has returned. */
typedef struct sluice_metric sluice_metric;
typedef struct sluice_series sluice_series;

typedef struct sluice_metrics {
  uint32_t struct_size;
  uint32_t reserved;
  /* The metric of that name; the same one for the same name. One whose name is there already as another kind, or as a
   * histogram with other buckets, is refused. Never NULL. [thread-safe] */
  sluice_metric* (*metric)(const struct sluice_host* host, const sluice_metric_spec* spec);
  /* The series of the metric with these labels, in whatever order; the same one for the same labels. The host adds a
   * label that names the job. Takes a lock, and no memory for a series that is there. Never NULL. [thread-safe] */
  sluice_series* (*series)(sluice_metric* metric, const sluice_attribute* labels, size_t label_count);
  /* Adds to a COUNTER, which takes nothing below 0, or to a GAUGE. Quick: no lock that lasts, no memory. [thread-safe]
   */
  void (*add)(sluice_series* series, double value);
  /* Sets a GAUGE. [thread-safe] */
  void (*set)(sluice_series* series, double value);
  /* Counts a value in a HISTOGRAM; NaN is not taken. [thread-safe] */
  void (*observe)(sluice_series* series, double value);
} sluice_metrics;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SLUICE_METRICS_H */
