#include "host/cli/convert/conversion.hpp"

#include "host/cli/convert/toml_text.hpp"

namespace sluice::cli::convert {

Conversion convert_worker_file(const std::string& text, const std::string& name,
                               const config::Environment& environment) {
  Conversion conversion;
  const auto fields = Fields::read(text, environment, conversion.complaints);
  if (fields == nullptr) {
    return conversion;
  }
  TomlText host;
  host.comment("From the configuration of outbox-worker, by `sluice outbox convert`.");
  host.comment("It said at which address it answers on the command line: --health-check-addr, by default :8080.");
  host.table("http");
  host.string("listen", "${SLUICE_LISTEN:-0.0.0.0:8080}");
  write_observation(*fields, host);
  write_outbox(*fields, name, host);
  std::vector<NewFile> jobs = write_jobs(*fields, name);
  if (!fields->complaints().empty()) {
    conversion.complaints = fields->complaints().text();
    return conversion;
  }
  conversion.files.push_back({"host.toml", host.text()});
  conversion.files.insert(conversion.files.end(), std::make_move_iterator(jobs.begin()),
                          std::make_move_iterator(jobs.end()));
  conversion.remarks = fields->take_remarks();
  return conversion;
}

}  // namespace sluice::cli::convert
