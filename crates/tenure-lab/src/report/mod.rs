//! What a person sees of a play.
