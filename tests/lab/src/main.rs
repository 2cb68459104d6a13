fn main() -> std::process::ExitCode {
    vmi_lab::commands::main(&std::env::args_os().collect::<Vec<_>>())
}
