sluice_fuzz(fuzz_plugin_file LIBRARIES sluice::plugin)
