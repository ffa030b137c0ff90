//! `tenure seq NAME [--block N]`.

use std::convert::Infallible;

use crate::args::SeqArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::output::codes::Code;
use crate::output::failure::Result;
use crate::output::human;
use crate::output::waiting::SILENCE;
use crate::session::Session;
use crate::store_choice::StoreChoice;

/// Prints numbers that nobody else gets.
pub async fn execute(args: SeqArgs, choice: StoreChoice, output: Output) -> Result<Exit> {
    crate::settings::name_to_take(&args.name)?;
    let session = Session::open_patiently(choice, args.wait, output).await?;
    let numbers = tokio::select! {
        biased;
        numbers = session.numbers(&args.name, args.block, args.wait) => numbers,
        never = tell(&session, &args.name, output) => match never {},
    };
    let numbers = match numbers {
        // Otherwise our place in the queue stays behind for a while.
        Err(failure) if matches!(failure.code, Code::Busy | Code::Recovering | Code::Raced) => {
            session.settle().await;
            return Err(failure);
        }
        numbers => numbers?,
    };
    let lines: Vec<String> = numbers.map(|number| number.to_string()).collect();
    output.hand_over(&lines.join("\n"))?;
    session.settle().await;
    Ok(Exit::Success)
}

/// Says, once, why it takes so long.
async fn tell(session: &Session, name: &str, output: Output) -> Infallible {
    session.clock().sleep(SILENCE).await;
    // A store that cannot be asked is told of at the end.
    if let Ok(Some(left)) = session.recovering(None).await {
        let left = human::duration(left.duration());
        output.note(&format!(
            "waiting for a number of {name:?}, store recovering, {left} left (why: tenure doctor)"
        ));
    }
    std::future::pending().await
}
