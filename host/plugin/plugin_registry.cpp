#include "host/plugin/plugin_registry.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace sluice::plugin {

namespace {

constexpr std::size_t kFileLimit = 1000;
// Unusable files that an error about a missing handler gives the reason for.
constexpr std::size_t kReasonLimit = 3;

FileIdentity identify(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    return {};
  }
  return {status.st_dev, status.st_ino, status.st_size,
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::string name_of(const std::string& file) { return std::filesystem::path(file).filename().string(); }

const sluice_handler* find_handler(const sluice_plugin& plugin, const std::string& name) {
  const auto* const end = plugin.handlers + plugin.handler_count;
  const auto* const found = std::find_if(plugin.handlers, end, [&name](const auto* one) { return one->name == name; });
  return found == end ? nullptr : *found;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

}  // namespace

void PluginRegistry::scan(const std::vector<std::string>& folders) {
  folders_ = folders;
  rejected_.clear();
  for (const std::string& folder : folders) {
    for (const std::string& file : files_of(folder)) {
      load(file);
    }
  }
}

std::vector<std::string> PluginRegistry::unseen(const std::vector<std::string>& folders) {
  rejected_.clear();
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    for (const std::string& file : files_of(folder)) {
      const FileIdentity identity = identify(file);
      const auto known = known_.find(file);
      if (known == known_.end() || (!known->second.loaded && known->second.identity != identity)) {
        looked_at_[file] = identity;
        files.push_back(file);
      }
    }
  }
  return files;
}

std::vector<std::string> PluginRegistry::files_of(const std::string& folder) {
  std::error_code code;
  std::vector<std::string> files;
  std::filesystem::directory_iterator entries(folder, code);
  for (; !code && entries != std::filesystem::directory_iterator(); entries.increment(code)) {
    const std::filesystem::path& path = entries->path();
    // Tools that copy files give unfinished ones names that begin with a dot.
    if (path.extension() == ".so" && !path.filename().string().starts_with('.')) {
      files.push_back(path.string());
    }
  }
  if (code) {
    rejected_.push_back(
        {folder, folder + " cannot be read: " + code.message() + "; make the folder, or take it out of plugin_dirs"});
    return {};
  }
  std::sort(files.begin(), files.end());
  if (files.size() > kFileLimit) {
    rejected_.push_back({folder, folder + " has " + std::to_string(files.size()) + " plugins, and only the first " +
                                     std::to_string(kFileLimit) + " are loaded: split the folder"});
    files.resize(kFileLimit);
  }
  return files;
}

void PluginRegistry::load(const std::string& file) {
  const FileIdentity identity = identify(file);
  if (const auto looked = looked_at_.find(file); looked != looked_at_.end() && looked->second != identity) {
    rejected_.push_back({file, file + " has changed while it was looked at: reload once it is complete"});
    return;
  }
  if (const auto known = known_.find(file); known != known_.end()) {
    if (known->second.loaded && known->second.identity != identity) {
      rejected_.push_back({file, file + " has changed since it was loaded, and a plugin is never unloaded: restart the "
                                        "host to use the new one"});
    } else if (!known->second.why.empty() && known->second.identity == identity) {
      rejected_.push_back({file, known->second.why});
    }
    if (known->second.loaded || known->second.identity == identity) {
      return;
    }
  }
  looked_at_.erase(file);
  const auto pin = pins_.find(name_of(file));
  const LibraryResult result = pin == pins_.end() ? load_library(file) : load_pinned_library(file, pin->second);
  if (result.loaded) {
    known_[file] = {identity, result.why, true};
  }
  if (result.plugin == nullptr) {
    rejected_.push_back({file, result.why});
    return;
  }
  // One file by two names, or one folder named twice, is one plugin.
  const bool is_new = std::none_of(plugins_.begin(), plugins_.end(),
                                   [&](const LoadedPlugin& other) { return other.plugin == result.plugin; });
  if (is_new) {
    plugins_.push_back({file, result.plugin, result.bytes});
  }
}

Result<const sluice_handler*> PluginRegistry::handler(const std::string& name) const {
  const sluice_handler* found = nullptr;
  std::string owner;
  for (const LoadedPlugin& loaded : plugins_) {
    const sluice_handler* candidate = find_handler(*loaded.plugin, name);
    if (candidate == nullptr) {
      continue;
    }
    if (found != nullptr) {
      return Error(ErrorCode::invalid, "two plugins offer the handler \"" + name + "\", " + owner + " and " +
                                           loaded.file + ": take one away, then restart the host");
    }
    found = candidate;
    owner = loaded.file;
  }
  if (found == nullptr) {
    return no_such_handler(name);
  }
  return found;
}

Result<const sluice_handler*> PluginRegistry::handler(const std::string& name, const config::PluginPin& pin) const {
  std::string why;
  for (const LoadedPlugin& loaded : plugins_) {
    if (name_of(loaded.file) != pin.file) {
      continue;
    }
    if (loaded.bytes == nullptr || loaded.bytes->sha256() != pin.sha256) {
      why = loaded.file +
            (loaded.bytes == nullptr ? " was loaded before a job pinned it"
                                     : " was loaded with the sha256 " + loaded.bytes->sha256()) +
            ", and the job pins " + pin.sha256 + ": restart the host, with the file that is meant in its place";
      continue;
    }
    if (const sluice_handler* found = find_handler(*loaded.plugin, name)) {
      return found;
    }
    return Error(ErrorCode::invalid, loaded.file + ", which the job pins, has no handler \"" + name + "\"");
  }
  for (const RejectedPlugin& refused : rejected_) {
    if (why.empty() && name_of(refused.file) == pin.file) {
      why = refused.why;
    }
  }
  return Error(ErrorCode::invalid, why.empty() ? "there is no " + pin.file + ", which the job pins, in " +
                                                     (folders_.empty() ? "any folder" : joined(folders_)) +
                                                     ": put it there, or correct [job.plugin]"
                                               : why);
}

Error PluginRegistry::no_such_handler(const std::string& name) const {
  std::string text = "no plugin offers the handler \"" + name + "\"";
  const std::vector<std::string> names = handler_names();
  if (const auto near = config::nearest(name, names)) {
    text += "; did you mean \"" + *near + "\"?";
  } else if (names.empty()) {
    text += "; there are no handlers at all";
  } else {
    text += "; there are: " + joined(names);
  }
  text += " (looked in " + (folders_.empty() ? "no folder" : joined(folders_));
  // Whoever reads this may have no shell where the host runs, and so no `sluice plugins`.
  for (std::size_t i = 0; i < std::min(rejected_.size(), kReasonLimit); ++i) {
    text += (i == 0 ? "; not usable: " : "; ") + rejected_[i].why;
  }
  if (rejected_.size() > kReasonLimit) {
    text += "; and " + std::to_string(rejected_.size() - kReasonLimit) + " more, which `sluice plugins` lists";
  }
  return Error(ErrorCode::invalid, text + ")");
}

std::vector<std::string> PluginRegistry::handler_names() const {
  std::vector<std::string> names;
  for (const LoadedPlugin& loaded : plugins_) {
    for (std::size_t i = 0; i < loaded.plugin->handler_count; ++i) {
      names.emplace_back(loaded.plugin->handlers[i]->name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

PluginPins pins_of(const std::vector<config::JobConfig>& jobs) {
  PluginPins pins;
  for (const config::JobConfig& job : jobs) {
    if (job.plugin) {
      pins.emplace(job.plugin->file, job.plugin->sha256);
    }
  }
  return pins;
}

}  // namespace sluice::plugin
