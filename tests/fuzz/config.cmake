# Named apart from the library's folder, which would otherwise be in the way of the executable.
sluice_fuzz(fuzz_config LIBRARIES sluice::config)
