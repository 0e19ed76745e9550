// What is compiled for the sets of precompiled headers to hang on: nothing.
