//! `tenure lab`: everything is in the crate `tenure-lab`; here it is only told how to start us again.

use tenure_lab::{LabArgs, Program};

use crate::exit::Exit;

/// Runs the lab.
pub fn execute(mut args: LabArgs, store: Option<String>) -> Exit {
    args.store = store;
    match tenure_lab::execute(args, &Program::this(&["lab"])) {
        0 => Exit::Success,
        code => Exit::Code(code),
    }
}
