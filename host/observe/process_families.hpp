#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "host/observe/metrics.hpp"

/// What the registry does not keep, in the form in which it is shown.
namespace sluice::observe {

/// What the kernel says of this process.
void append_process(std::vector<prometheus::MetricFamily>& families);
/// Figures that somebody else keeps.
prometheus::MetricFamily family_of(const FigureFamily& family);

}  // namespace sluice::observe
