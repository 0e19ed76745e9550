#pragma once

#include <vector>

#include "host/cost/cost_book.hpp"
#include "host/observe/metrics.hpp"
#include "host/runtime/depth_sampler.hpp"

/// What /metrics shows of what others keep. Pure functions.
namespace sluice::runtime {

std::vector<observe::FigureFamily> depth_figures(const DepthSampler& depths, SteadyTime now);
std::vector<observe::FigureFamily> ledger_figures(bool kept);
std::vector<observe::FigureFamily> cost_figures(const cost::CostView& view, const cost::Prices& prices);

}  // namespace sluice::runtime
