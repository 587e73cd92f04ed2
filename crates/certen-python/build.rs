//! Some systems want to be told that what Python has is found when the library is loaded.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
