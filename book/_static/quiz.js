// Turns the options of each question into buttons that answer with the explanation, keeps the score, and starts again.
// Without this script the page is a list of questions, each with its answer folded away.

document.querySelectorAll("ol.quiz").forEach((quiz) => {
  const questions = [...quiz.children];
  const score = document.createElement("p");
  score.className = "quiz-score";
  score.setAttribute("role", "status");
  const restart = document.createElement("button");
  restart.type = "button";
  restart.className = "quiz-restart";
  restart.textContent = "Start again";
  restart.hidden = true;

  const showScore = () => {
    const answered = questions.filter((question) => question.dataset.answered);
    const right = answered.filter((question) => question.dataset.answered === "right").length;
    const left = questions.length - answered.length;
    restart.hidden = answered.length === 0;
    score.textContent = answered.length === 0 ? ""
      : left ? `${right} of ${answered.length} right, ${left} to go.`
      : `${right} of ${questions.length} right: ${Math.round((100 * right) / questions.length)} %.`;
  };

  const resets = questions.map((question) => {
    const options = [...question.querySelector(".quiz-options").children];
    const details = question.querySelector("details");
    const letter = details.querySelector(".quiz-letter"), right = letter.textContent;
    const feedback = document.createElement("div");
    feedback.className = "quiz-feedback";
    feedback.setAttribute("role", "status"); // screen readers read out what appears here
    details.after(feedback);

    const buttons = options.map((option) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...option.querySelector("p").childNodes);
      option.replaceChildren(button);
      return button;
    });

    const answer = (option) => {
      if (question.dataset.answered) return;
      const isRight = option.classList.contains("quiz-right");
      question.dataset.answered = isRight ? "right" : "wrong";
      option.classList.add("quiz-chosen");
      // Not disabled: a disabled button would lose the keyboard's focus.
      buttons.forEach((button) => button.setAttribute("aria-disabled", "true"));
      const verdict = document.createElement("strong");
      verdict.textContent = isRight ? "Right. " : "No. ";
      letter.textContent = isRight ? "" : right;
      letter.prepend(verdict);
      feedback.append(...[...details.children].slice(1));
      details.hidden = true;
      showScore();
    };
    buttons.forEach((button, i) => button.addEventListener("click", () => answer(options[i])));

    return () => {
      delete question.dataset.answered;
      options.forEach((option) => option.classList.remove("quiz-chosen"));
      buttons.forEach((button) => button.removeAttribute("aria-disabled"));
      letter.textContent = right;
      details.append(...feedback.children);
      details.open = details.hidden = false;
    };
  });

  restart.addEventListener("click", () => {
    resets.forEach((reset) => reset());
    showScore();
    questions[0].querySelector("button").focus();
  });
  quiz.after(score, restart);
});
