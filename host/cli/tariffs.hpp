#pragma once

#include <string>

#include "config/config.hpp"
#include "host/operate/table_tariff.hpp"

namespace sluice::cli {

/// By what writes to that queue are paid.
inline operate::TableTariff tariff_of(const config::HostConfig& host, const std::string& queue) {
  using Layout = operate::TableTariff::Layout;
  if (host.outbox(queue) != nullptr || host.store_of(queue).kind != config::StoreKind::dynamodb) {
    return {};
  }
  return {host.leased(queue) ? Layout::leased : Layout::dynamomq, queue};
}

}  // namespace sluice::cli
