// A library needs a source; this one only brings the precompiled header and the flags of the test programs.
