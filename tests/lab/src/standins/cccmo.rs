//! Not here yet.

use kube::Client;

use super::Error;

pub async fn run(_client: Client, _arguments: &[String]) -> Result<(), Error> {
    Err(Error::UnknownName("cccmo".to_owned()))
}
