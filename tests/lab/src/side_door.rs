//! The door through which an operator under test reaches the apiserver: bytes go through as they are, but what its watches bring
//! can be made late. Nothing is decrypted, so a watch is told from a request by its time: an answer follows its request at once,
//! and what comes long after the last request is an event.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// After so long without a word from the client, the server speaks of itself.
const UNASKED: Duration = Duration::from_secs(1);

/// Carries connections to `server` until dropped; unasked bytes come later by `delay`.
pub async fn serve(listener: TcpListener, server: SocketAddr, delay: watch::Receiver<Duration>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    connections.spawn(carry(client, server, delay.clone()));
                }
                // Too many open files, say: the next one may find room.
                Err(error) => tracing::warn!(%error, "a connection to the side door is lost"),
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn carry(client: TcpStream, server: SocketAddr, delay: watch::Receiver<Duration>) {
    // Where the apiserver does not answer, the client sees a closed connection, as it would without the door.
    let Ok(server) = TcpStream::connect(server).await else { return };
    let quick = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    if let Err(error) = quick {
        tracing::debug!(%error, "small packets of a connection wait for others");
    }
    let asked = Arc::new(Mutex::new(Instant::now()));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        () = requests(from_client, to_server, &asked) => {}
        () = answers(from_server, to_client, &asked, delay) => {}
    }
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, asked: &Mutex<Instant>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        *asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, asked: &Mutex<Instant>, delay: watch::Receiver<Duration>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let late = *delay.borrow();
        let silent = asked.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        if !late.is_zero() && silent > UNASKED {
            tokio::time::sleep(late).await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer to `ask`, and a word that nobody asked for after a while.
    async fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 3];
            stream.read_exact(&mut buffer).await.unwrap();
            stream.write_all(b"answer").await.unwrap();
            tokio::time::sleep(UNASKED + Duration::from_millis(100)).await;
            stream.write_all(b"event!").await.unwrap();
            // Until the test has read it.
            let _ = stream.read(&mut buffer).await;
        });
        address
    }

    async fn six(stream: &mut TcpStream) -> (String, Instant) {
        let mut buffer = [0; 6];
        stream.read_exact(&mut buffer).await.unwrap();
        (String::from_utf8_lossy(&buffer).into_owned(), Instant::now())
    }

    #[tokio::test]
    async fn what_nobody_asked_for_comes_late_and_an_answer_at_once() {
        const LATE: Duration = Duration::from_secs(2);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let door = listener.local_addr().unwrap();
        let (_sender, delay) = watch::channel(LATE);
        tokio::spawn(serve(listener, server().await, delay));
        let mut stream = TcpStream::connect(door).await.unwrap();
        stream.write_all(b"ask").await.unwrap();
        let (answer, at) = six(&mut stream).await;
        assert_eq!(answer, "answer");
        let (event, later) = six(&mut stream).await;
        assert_eq!(event, "event!");
        assert!(later - at >= UNASKED + LATE, "it came after {:?}", later - at);
    }
}
